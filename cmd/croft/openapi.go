package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"croft/rest/camp"
	"croft/rest/im"
	"croft/rest/zoe"
)

func (a *app) openapiCommand() *cobra.Command {
	describe := map[string]func() ([]byte, error){"im": im.OpenAPI, "zoe": zoe.OpenAPI, "camp": camp.OpenAPI}
	return &cobra.Command{
		Use:   "openapi API",
		Short: "Describe a REST API (OpenAPI 3)",
		Long: `Print the description of a REST API of croft serve, im, zoe or camp, as OpenAPI 3
in JSON. A server has it at /im/openapi.json, and so on.`,
		Example:   "  croft openapi camp",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"im", "zoe", "camp"},
		RunE: func(_ *cobra.Command, args []string) error {
			of, ok := describe[args[0]]
			if !ok {
				return fmt.Errorf("there is no REST API %q: there are im, zoe and camp", args[0])
			}
			text, err := of()
			if err != nil {
				return err
			}
			return a.writeDocument(string(text))
		},
	}
}
