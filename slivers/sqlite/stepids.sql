-- Numbers of steps are never given again: who still sees to a step that is
-- gone must not be taken for one who sees to another.

CREATE TABLE steps_anew (
	id       INTEGER PRIMARY KEY AUTOINCREMENT,
	slice    TEXT NOT NULL REFERENCES slices(key),
	document INTEGER NOT NULL,
	sliver   TEXT NOT NULL REFERENCES slivers(key),
	task     TEXT NOT NULL,
	record   TEXT NOT NULL,
	output   TEXT
) STRICT;

INSERT INTO steps_anew SELECT id, slice, document, sliver, task, record, output FROM steps;
DROP TABLE steps;
ALTER TABLE steps_anew RENAME TO steps;

CREATE INDEX steps_by_slice ON steps(slice, document, id);
CREATE INDEX steps_by_sliver ON steps(sliver);
