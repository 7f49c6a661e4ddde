package rest

import (
	"fmt"
	"net/http"

	"github.com/goccy/go-yaml"
)

// OpenAPI turns the description of a face's API (OpenAPI 3) from YAML, which
// it is written in, to JSON, which is served.
func OpenAPI(text []byte) ([]byte, error) {
	description, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the description of an API: %w", err)
	}
	return description, nil
}

// ServeOpenAPI answers with the description of an API, which is nobody's secret.
func ServeOpenAPI(w http.ResponseWriter, description []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description)
}
