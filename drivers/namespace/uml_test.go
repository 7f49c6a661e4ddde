package namespace_test

import (
	"testing"

	"croft/internal/umltest"
)

// TestCgroupVersion2 has nodes reach their limits where there are no cgroups
// of version 1.
func TestCgroupVersion2(t *testing.T) { umltest.Run(t, "TestLimitsReached") }
