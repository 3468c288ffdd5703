def english():
    d={}
    for l in open('/tmp/aug/symspellpy/frequency_dictionary_en_82_765.txt',encoding='utf-8-sig'):
        w,c=l.split(); d[w]=int(c)
    return d
