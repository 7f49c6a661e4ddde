-- Steps of start-up graphs. task is what a step does (request.Step as JSON)
-- and never changes; record is how it goes (slivers.Step as JSON).

CREATE TABLE steps (
	id       INTEGER PRIMARY KEY,
	slice    TEXT NOT NULL REFERENCES slices(key),
	document INTEGER NOT NULL,
	sliver   TEXT NOT NULL REFERENCES slivers(key),
	task     TEXT NOT NULL,
	record   TEXT NOT NULL,
	output   TEXT
) STRICT;

CREATE INDEX steps_by_slice ON steps(slice, document, id);
CREATE INDEX steps_by_sliver ON steps(sliver);
