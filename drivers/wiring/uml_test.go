package wiring_test

import (
	"testing"

	"croft/internal/umltest"
)

// TestNetem shapes links where the kernel does it all.
func TestNetem(t *testing.T) { umltest.Run(t, "TestLinks$|TestShape|TestDirections") }
