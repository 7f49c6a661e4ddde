package rspec

import "croft/languages"

func schemaProblems(d *document) []languages.Problem { return nil }
