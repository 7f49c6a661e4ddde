package im

import (
	_ "embed"

	"croft/rest"
)

//go:embed openapi.yaml
var description []byte

// OpenAPI describes the API (OpenAPI 3, as JSON).
func OpenAPI() ([]byte, error) { return rest.OpenAPI(description) }
