package main

import "github.com/spf13/cobra"

const policyHelp = `Who may do what, beyond what SFA credentials say, is written in RT0 in the file
that trust.policy of croft.yaml names. Its lines are

  # a comment
  principal geant = certificate "geant.pem"
  principal lab = key 4ba5c8c1a0d8c4c3a1b6e0a3f3f1d2a9c7b5e4d0
  aggregate.Allocate <- sfa.Allocate & geant.project_x
  aggregate.trusted  <- geant.partner.member
  aggregate.Shutdown <- aggregate.trusted & lab.operator
  aggregate.any      <- sfa.any & "example.org".user

"aggregate" is this aggregate manager. Its role of the name of a call holds
those who may make that call, its role "any" those who may make every call; for
calls that the file does not mention, the rule of the SFA holds.

"sfa" stands for that rule. A quoted authority stands for its name space: its
role "user" holds the users whose certificates are of it, its role "slice" holds
everybody when the slice is of it. Roles of other principals are proven by the
ABAC credentials in the call.`

// policyTopic is a page of help, not a command.
func policyTopic() *cobra.Command {
	return &cobra.Command{Use: "policy", Short: "How to write who may do what (a page of help)", Long: policyHelp}
}
