package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"croft/request"
	"croft/slivers"
	"croft/urn"
)

// testSteps tests what the store keeps of start-up graphs.
func testSteps(t *testing.T, make func(t *testing.T) Subject) {
	ctx := context.Background()

	// reserved reserves two nodes with three steps.
	reserved := func(t *testing.T, s slivers.Store) []slivers.Step {
		t.Helper()
		nodes := []slivers.Sliver{node(slice, "a", host1), node(slice, "b", host2)}
		task := func(name, node string) request.Step {
			return request.Step{Name: request.StepName(name), Node: request.ClientID(node), Run: &request.Run{Command: name, Args: []string{"x"}},
				Files: []request.File{{Path: "/f", Mode: 0o640, Content: []byte{0, 255}}},
				Env: []request.Variable{{Name: "X", Value: request.Value{{Text: "t"}, {Output: &request.Output{Step: "one", Name: "N"}},
					{Attribute: &request.Attribute{Node: "a", Name: request.AttrAddress}}}}},
				Limit: time.Minute}
		}
		r := slivers.Reservation{
			Slice: slice, Slivers: nodes, Mapped: s.Occupancy().Version,
			Document: slivers.Document{Slice: slice, MediaType: "text/plain", Received: start},
			Steps: []slivers.Step{
				{Slice: slice, Name: "one", Node: "a", Sliver: nodes[0].URN, Kind: slivers.StepRun, State: slivers.StepWaiting},
				{Slice: slice, Name: "two", Node: "b", Sliver: nodes[1].URN, Kind: slivers.StepRun, State: slivers.StepWaiting, After: []request.StepName{"one"}},
				{Slice: slice, Name: "three", Node: "a", Sliver: nodes[0].URN, Kind: slivers.StepRun, State: slivers.StepWaiting},
			},
			Tasks: []request.Step{task("one", "a"), task("two", "b"), task("three", "a")},
		}
		if err := s.Reserve(ctx, r); err != nil {
			t.Fatalf("Reserve: %v", err)
		}
		got, err := s.Steps(ctx, slice)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 || got[0].Name != "one" || got[1].Name != "two" || got[2].Name != "three" {
			t.Fatalf("steps after Reserve: %+v", got)
		}
		for i, v := range got {
			if v.Document != 1 || v.ID == 0 || v.ID != r.Steps[i].ID {
				t.Errorf("step %s is %d of document %d, Reserve said %d", v.Name, v.ID, v.Document, r.Steps[i].ID)
			}
			if is, err := s.Task(ctx, v.ID); err != nil || !reflect.DeepEqual(is, r.Tasks[i]) {
				t.Errorf("task of %s: %+v, %v; want %+v", v.Name, is, err, r.Tasks[i])
			}
		}
		return got
	}

	t.Run("how steps go survives reopening", func(t *testing.T) {
		subject := make(t)
		list := reserved(t, subject.Store)
		ended := start.Add(time.Minute)
		err := subject.Store.UpdateSteps(ctx, []slivers.StepID{list[1].ID, 12345, list[0].ID}, func(held []*slivers.Step) error {
			if len(held) != 2 {
				t.Errorf("%d steps to change, want 2", len(held))
			}
			for _, h := range held {
				if h.Name == "one" {
					h.State, h.Attempt, h.Started, h.Ended, h.Status = slivers.StepFailed, 2, start, ended, 3
					h.Reason, h.Outputs, h.Made, h.Boot, h.Alive = "why", map[string]string{"N": "v"}, 1, 2, true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		output := slivers.StepOutput{Head: []byte("a\x00"), Left: 7, Tail: []byte{255}}
		if err := subject.Store.SetStepOutput(ctx, list[0].ID, output); err != nil {
			t.Fatal(err)
		}
		s := subject.Reopen(t)
		got, err := s.Steps(ctx, slice)
		if err != nil {
			t.Fatal(err)
		}
		want := list[0]
		want.State, want.Attempt, want.Started, want.Ended, want.Status = slivers.StepFailed, 2, start, ended, 3
		want.Reason, want.Outputs, want.Made, want.Boot, want.Alive = "why", map[string]string{"N": "v"}, 1, 2, true
		if !reflect.DeepEqual(got, []slivers.Step{want, list[1], list[2]}) {
			t.Errorf("steps after reopening: %+v", got)
		}
		if is, err := s.StepOutput(ctx, list[0].ID); err != nil || !reflect.DeepEqual(is, output) {
			t.Errorf("output after reopening: %+v, %v", is, err)
		}
		if is, err := s.StepOutput(ctx, list[1].ID); err != nil || len(is.Head) > 0 {
			t.Errorf("output of a step that wrote nothing: %+v, %v", is, err)
		}
	})

	t.Run("an error undoes changes of steps", func(t *testing.T) {
		s := make(t).Store
		list := reserved(t, s)
		wrong := errors.New("wrong")
		err := s.UpdateSteps(ctx, []slivers.StepID{list[0].ID}, func(held []*slivers.Step) error {
			held[0].State = slivers.StepDone
			return wrong
		})
		if !errors.Is(err, wrong) {
			t.Errorf("UpdateSteps: %v", err)
		}
		if got, err := s.Steps(ctx, slice); err != nil || got[0].State != slivers.StepWaiting {
			t.Errorf("steps: %+v, %v", got, err)
		}
	})

	t.Run("numbers of steps are not given again", func(t *testing.T) {
		s := make(t).Store
		before := reserved(t, s)
		all, err := s.OfSlice(ctx, slice)
		if err != nil {
			t.Fatal(err)
		}
		var urns []urn.URN
		for _, v := range all {
			urns = append(urns, v.URN)
		}
		err = s.Update(ctx, urns, func(held []*slivers.Sliver) error {
			for _, v := range held {
				v.Goal = slivers.Forgotten
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range reserved(t, s) {
			if v.ID <= before[2].ID {
				t.Errorf("step %s is %d, after %d", v.Name, v.ID, before[2].ID)
			}
		}
	})

	t.Run("steps go with their slivers", func(t *testing.T) {
		s := make(t).Store
		list := reserved(t, s)
		forget := func(held []*slivers.Sliver) error {
			for _, h := range held {
				h.Goal = slivers.Forgotten
			}
			return nil
		}
		if err := s.Update(ctx, urns(node(slice, "a", host1)), forget); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Steps(ctx, slice); err != nil || len(got) != 1 || got[0].Name != "two" {
			t.Errorf("steps that are left: %+v, %v", got, err)
		}
		if _, err := s.Task(ctx, list[0].ID); !errors.Is(err, slivers.ErrNotFound) {
			t.Errorf("Task of a step that is gone: %v", err)
		}
		if _, err := s.StepOutput(ctx, list[0].ID); !errors.Is(err, slivers.ErrNotFound) {
			t.Errorf("StepOutput of a step that is gone: %v", err)
		}
		if err := s.SetStepOutput(ctx, list[0].ID, slivers.StepOutput{}); err != nil {
			t.Errorf("SetStepOutput of a step that is gone: %v", err)
		}
		if err := s.Update(ctx, urns(node(slice, "b", host2)), forget); err != nil {
			t.Fatal(err)
		}
		reserved(t, s) // the same names again
	})
}
