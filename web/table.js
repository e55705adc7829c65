/* A table that is complete in the page becomes sortable and gets a filter box. */

/* What a cell is sorted by: its number where it has one (data-v), its text otherwise. */
function keyOf(cell) {
  const number = cell.dataset.v;
  return number === undefined ? cell.textContent : Number(number);
}

/* Numbers before texts, so that "n/a: …" never stands among the largest. */
export function compareKeys(a, b) {
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  if (typeof a === 'number') return a - b;
  return a < b ? -1 : a > b ? 1 : 0;
}

export class SortableTable {
  constructor(table, filter, status) {
    this.table = table;
    this.body = table.tBodies[0];
    this.rows = Array.from(this.body.rows);
    this.filter = filter;
    this.status = status;
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const button = table.ownerDocument.createElement('button');
      button.textContent = head.textContent;
      button.addEventListener('click', () => this.sort(column));
      head.replaceChildren(button);
    });
    filter.addEventListener('input', () => this.show());
    this.show();
  }

  /* The first click on numbers puts the largest on top, a second one turns it round. */
  sort(column) {
    const heads = Array.from(this.table.tHead.rows[0].cells);
    const numbers = this.rows.some((row) => row.cells[column].dataset.v !== undefined);
    const before = heads[column].getAttribute('aria-sort');
    const up = before ? before === 'descending' : !numbers;
    heads.forEach((head) => head.removeAttribute('aria-sort'));
    heads[column].setAttribute('aria-sort', up ? 'ascending' : 'descending');
    const keyed = this.rows.map((row, at) => ({ row, at, key: keyOf(row.cells[column]) }));
    keyed.sort((a, b) => {
      if (typeof a.key !== typeof b.key) return compareKeys(a.key, b.key);
      return (up ? 1 : -1) * compareKeys(a.key, b.key) || a.at - b.at;
    });
    this.rows = keyed.map((item) => item.row);
    this.body.append(...this.rows);
  }

  show() {
    const needle = this.filter.value.toLowerCase();
    let shown = 0;
    for (const row of this.rows) {
      row.hidden = !row.textContent.toLowerCase().includes(needle);
      if (!row.hidden) shown++;
    }
    this.status.textContent = `${shown} of ${this.rows.length} rows`;
  }
}
