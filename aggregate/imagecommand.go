package aggregate

import (
	"context"
	"fmt"

	"croft/drivers"
	"croft/inventory"
	"croft/request"
	"croft/slivers"
)

// imageCommands gives the services of placed nodes that leave their command
// open that of their node's image: what the inventory declares, or what the
// driver knows. Tasks stay as they are; those that are completed are copies.
func (s *Service) imageCommands(ctx context.Context, snapshot *inventory.Snapshot, tasks []request.Step, placed []slivers.Sliver) ([]request.Step, error) {
	nodes := map[request.ClientID]*slivers.NodeFacts{}
	for _, v := range placed {
		if v.Node != nil {
			nodes[v.ClientID] = v.Node
		}
	}
	out := make([]request.Step, len(tasks))
	for i, t := range tasks {
		out[i] = t
		if t.Service == nil || t.Service.Command != "" || len(t.Service.Args) > 0 {
			continue
		}
		node := nodes[t.Node]
		if node == nil {
			return nil, noCommand(&t, "the node is there already", "give the service a command")
		}
		own := *t.Service
		if err := s.imageCommand(ctx, snapshot, node, &t, &own.Run); err != nil {
			return nil, err
		}
		out[i].Service = &own
	}
	return out, nil
}

// imageCommand completes one command.
func (s *Service) imageCommand(ctx context.Context, snapshot *inventory.Snapshot, node *slivers.NodeFacts, t *request.Step, run *request.Run) error {
	name, source := "", ""
	for _, i := range snapshot.Images {
		if i.ID.Equal(node.Image) {
			if i.Command != "" {
				run.Command = i.Command
				return nil
			}
			name, source = i.Name, i.Source
		}
	}
	const hint = "give the service a command, or ask the operator to declare one for the image (command, in the inventory)"
	if name == "" {
		return noCommand(t, "the node's image has none", hint)
	}
	knows, ok := s.Drivers[node.Driver].(drivers.Commander)
	if !ok {
		return noCommand(t, fmt.Sprintf("image %s declares none", name), hint)
	}
	args, dir, err := knows.ImageCommand(ctx, node.Host, source)
	if err != nil {
		return fmt.Errorf("asking for the command of image %s: %w", name, err)
	}
	if len(args) == 0 {
		return noCommand(t, fmt.Sprintf("image %s has none", name), hint)
	}
	run.Args = args
	if run.Dir == "" {
		run.Dir = dir
	}
	return nil
}

func noCommand(t *request.Step, why, hint string) *Error {
	return &Error{Item: string(t.Node), Kind: BadArgs, Hint: hint,
		Err: fmt.Errorf("%s: the service of node %s is to run what its image runs, but %s", t.Place, t.Node, why)}
}
