package wiring_test

import (
	"os"
	"testing"

	"croft/drivers/wiring"
)

func TestMain(m *testing.M) {
	wiring.Init()
	os.Exit(m.Run())
}
