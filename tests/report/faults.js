// Everything that is wrong with how a page is laid out: text that is cut off or covered, cards that overlap.
() => {
  const found = [];
  const seen = (one) => one.checkVisibility({ visibilityProperty: true });
  const box = (one) => one.getBoundingClientRect();
  const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1.5 || b.bottom <= a.top + 1.5;
  const pairs = (boxes, tell) => boxes.forEach(([name, one], at) =>
    boxes.slice(at + 1).filter(([, other]) => !apart(one, other)).forEach(([other]) => found.push(tell(name, other))));

  for (const drawing of document.querySelectorAll(".chart svg")) {
    const edge = box(drawing);
    const texts = [...drawing.querySelectorAll("text")].filter((one) => one.textContent.trim()).map((one) => [one.textContent, box(one)]);
    for (const [text, own] of texts) {
      if (text.includes("…")) found.push(`cut: ${text}`);
      const inside = own.left >= edge.left - 1 && own.right <= edge.right + 1 && own.top >= edge.top - 1 && own.bottom <= edge.bottom + 1;
      if (!inside) found.push(`outside: ${text}`);
    }
    pairs(texts, (one, other) => `overlap: ${one} / ${other}`);
  }

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const owner = node.parentElement;
    if (!node.textContent.trim() || !seen(owner) || owner.closest("svg, script, pre, .scroll, .glance > h2")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const card = box(owner.closest("figure") ?? document.body);
    if (box(range).left < card.left - 1 || box(range).right > card.right + 1) found.push(`clipped: ${node.textContent.trim()}`);
  }

  for (const cell of document.querySelectorAll("td, th")) {
    if (seen(cell) && cell.scrollWidth > cell.clientWidth + 1) found.push(`too narrow: ${cell.textContent}`);
  }
  for (const row of document.querySelectorAll(".intervals .row")) {
    pairs([...row.children].filter(seen).map((one) => [one.textContent, box(one)]), () => `overlap: ${row.textContent}`);
  }
  for (const figure of document.querySelectorAll("figure")) {
    pairs([...figure.children].filter(seen).map((one) => [one.tagName, box(one)]).slice(0, 2), (one, other) => `overlap: ${one} / ${other}`);
  }
  pairs([...document.querySelectorAll("figure")].filter(seen).map((one) => ["card", box(one)]), () => "cards overlap");
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
}
