-- Slices, the documents that callers sent for them, and their slivers.
-- key is the canonical form of a URN; record is the sliver as JSON, and the
-- columns beside it are what rows are found by.

CREATE TABLE slices (
	key      TEXT PRIMARY KEY,
	urn      TEXT NOT NULL,
	shutdown INTEGER NOT NULL,
	created  INTEGER NOT NULL -- ns since 1970
) STRICT;

CREATE TABLE documents (
	slice      TEXT NOT NULL REFERENCES slices(key),
	id         INTEGER NOT NULL,
	media_type TEXT NOT NULL,
	bytes      BLOB NOT NULL,
	received   INTEGER NOT NULL,
	PRIMARY KEY (slice, id)
) STRICT;

CREATE TABLE slivers (
	key      TEXT PRIMARY KEY,
	slice    TEXT NOT NULL REFERENCES slices(key),
	document INTEGER NOT NULL,
	record   TEXT NOT NULL,
	FOREIGN KEY (slice, document) REFERENCES documents(slice, id)
) STRICT;

CREATE INDEX slivers_by_slice ON slivers(slice, document);

CREATE TABLE events (
	id     INTEGER PRIMARY KEY,
	at     INTEGER NOT NULL,
	slice  TEXT NOT NULL,
	record TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_slice ON events(slice, id);
CREATE INDEX events_by_time ON events(at);
