package mapping_test

import "croft/capacity"

func coresOf(c float64) capacity.Cores { return capacity.Cores(c * float64(capacity.Core)) }

func amount(cores float64, memory capacity.MiB) capacity.Amount {
	return capacity.Amount{Cores: coresOf(cores), Memory: memory}
}
