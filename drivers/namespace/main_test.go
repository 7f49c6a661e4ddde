package namespace_test

import (
	"os"
	"testing"

	"croft/drivers/namespace"
)

func TestMain(m *testing.M) {
	namespace.Init()
	os.Exit(m.Run())
}
