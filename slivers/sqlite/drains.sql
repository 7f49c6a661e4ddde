-- Hosts that the operator lets no new slivers on. key is the canonical form of
-- the host's URN.

CREATE TABLE drains (
	key    TEXT PRIMARY KEY,
	urn    TEXT NOT NULL,
	reason TEXT NOT NULL,
	since  INTEGER NOT NULL -- ns since 1970
) STRICT;
