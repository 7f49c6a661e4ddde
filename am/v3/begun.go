package v3

import (
	"croft/aggregate"
	"croft/am/wire"
	"croft/credentials"
)

// begun is a call on urns whose caller is known and whose target was found.
type begun struct {
	args       *wire.Args
	options    wire.Options
	principal  *credentials.Principal
	target     aggregate.Target
	bestEffort bool
}
