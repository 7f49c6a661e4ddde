package credentials

import "croft/urn"

// A Policy says in RT0 who may do what.
type Policy struct{}

func (*Policy) decides(Call) bool { return false }

func (p *Principal) mayByPolicy(call Call, target urn.URN, slivers []urn.URN) (Grant, error) {
	return Grant{}, p.refusal(call, target, "", p.reasons)
}
