// Where the words of a text begin and end (pure). A word carries the spaces behind it.

// Scripts that are written without spaces: only the browser's dictionary knows their words.
const UNSPACED_SCRIPTS = ['Han', 'Hiragana', 'Katakana', 'Thai', 'Lao', 'Khmer', 'Myanmar'];
const UNSPACED = new RegExp(`[${UNSPACED_SCRIPTS.map((name) => `\\p{Script=${name}}`).join('')}]`, 'u');

const segmenter = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: 'word' }) : null;

// The words of `text` from the offset `from` on: [{start, end}], without a gap.
export function splitWords(text, from = 0) {
  const words = [];
  for (const { 0: chunk, index } of text.slice(from).matchAll(/\s*\S+\s*/g)) {
    const start = from + index;
    if (segmenter && UNSPACED.test(chunk)) {
      for (const part of segmenter.segment(chunk)) addSegment(words, start + part.index, part);
    } else {
      words.push({ start, end: start + chunk.length });
    }
  }
  const end = words.at(-1)?.end ?? from;
  if (end < text.length) words.push({ start: end, end: text.length }); // spaces alone
  return words;
}

// Marks and spaces go with the word before them.
function addSegment(words, start, { segment, isWordLike }) {
  const end = start + segment.length;
  const last = words.at(-1);
  if (!isWordLike && last && last.end === start) last.end = end;
  else words.push({ start, end });
}

// Divides the word in which `cut` lies, so that a line can begin between two letters.
export function cutWords(words, cut) {
  if (cut === null) return words;
  return words.flatMap(({ start, end }) =>
    start < cut && cut < end ? [{ start, end: cut }, { start: cut, end }] : [{ start, end }],
  );
}
