// The search worker of the site: guides that people ask for in these words first, then what the engine of the theme finds.
// `tools/site_search.py` puts it in the place of that engine, which it loads, and adds `asked` and `fillers` to the index.
importScripts("engine.js");

const engine = self.onmessage, send = self.postMessage.bind(self);
const FITS = 0.4, NEAR = 0.75; // how much of a question a guide must have, and how much of what the best guide has
const GUIDES = 2; // before other results
let answer, guides = [], fillers = new Set();
self.postMessage = data => { answer = data; };

const words = text => { // stems, as in launcher/search.py, which `ppo-tui help` asks
  const all = text.toLowerCase().match(/[a-z0-9]+/g) ?? [], meant = all.filter(each => !fillers.has(each));
  return new Set((meant.length ? meant : all).map(each => each.replace(/(ing|ed|es|s|e)$/, "").slice(0, 5)));
};
const fit = (asked, phrase) => 2 * [...asked].filter(each => phrase.has(each)).length / (asked.size + phrase.size);

// Guides for a question, the best first; none for a name such as actor.lr or KL-4.
const asked = text => {
  if (/^\S*([._]\w|-\d)\S*$/.test(text.trim())) return [];
  const wanted = words(text);
  const found = guides.map(({id, phrases}) => ({id, fits: Math.max(...phrases.map(each => fit(wanted, each)))}));
  found.sort((one, other) => other.fits - one.fits);
  return found.filter(({fits}) => fits >= Math.max(FITS, NEAR * found[0].fits)).slice(0, GUIDES).map(({id}) => id);
};

const search = (data, input) => {
  engine({data: {...data, data: {...data.data, input}}});
  return answer.data;
};

// Without the fillers; if no text has all words, without those at the end.
const results = (data, text) => {
  const all = text.trim().split(/\s+/), meant = all.filter(each => !fillers.has(each.toLowerCase()));
  const wanted = meant.length ? meant : all;
  let found = search(data, wanted.join(" "));
  while (!found.items.length && wanted.pop() && wanted.length) found = search(data, wanted.join(" "));
  return found;
};

self.onmessage = async ({data}) => {
  const text = data.data.input;
  if (data.type !== 2 || typeof text !== "string" || !text.trim()) {
    await engine({data});
    if (data.type === 0) {
      fillers = new Set(data.data.config.fillers.trim().split(/[\s-]+/));
      guides = data.data.items.flatMap(({asked}, id) => asked ? [{id, phrases: asked.map(words)}] : []);
    }
    return send(answer);
  }
  const first = asked(text), found = results(data, text);
  const known = new Map(found.items.map(each => [each.id, each]));
  const before = data.data.page ? [] : first.map(id => known.get(id) ?? {id, matches: []});
  const items = [...before, ...found.items.filter(({id}) => !first.includes(id))];
  send({...answer, data: {...found, items, total: Math.max(found.total, items.length)}});
};
