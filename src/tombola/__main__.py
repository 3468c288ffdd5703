from tombola.cli import main

main()
