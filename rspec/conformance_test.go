package rspec_test

import (
	"testing"

	"croft/languages/languagestest"
	"croft/rspec"
)

func TestConformance(t *testing.T) {
	languagestest.Test(t, rspec.Language{}, languagestest.Documents{
		Good: goodRequests(t),
		Bad: map[string][]byte{
			"mistakes":        requestFile(t, "mistakes.rspec"),
			"not well-formed": []byte(`<rspec xmlns="http://www.geni.net/resources/rspec/3" type="request"><node></rspec>`),
			"document type":   []byte(`<!DOCTYPE rspec><rspec xmlns="http://www.geni.net/resources/rspec/3" type="request"/>`),
			"advertisement":   advertisement(t, testbed(3), nil, rspec.AdvertisementOptions{}),
		},
		Unknown: map[string][]byte{
			"ProtoGENI 0.1": []byte(`<rspec xmlns="http://www.protogeni.net/resources/rspec/0.1" type="request"/>`),
			"SFA":           []byte(`<RSpec type="SFA"/>`),
			"HTML":          []byte(`<html/>`),
		},
		Foreign: map[string][]byte{
			"RADL":  []byte("network public (outbound = 'yes')\nsystem front (cpu.count>=2)\ndeploy front 1\n"),
			"TOSCA": []byte("tosca_definitions_version: tosca_2_0\nservice_template:\n  node_templates: {}\n"),
			"ZAPP":  []byte(`{"version": 2, "name": "app"}`),
			"XML":   []byte(`<?xml version="1.0"?><plan/>`),
		},
	})
}
