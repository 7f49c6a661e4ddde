-- The values that callers sent for the parameters of a document, as JSON; ""
-- for none.

ALTER TABLE documents ADD COLUMN inputs TEXT NOT NULL DEFAULT '';
