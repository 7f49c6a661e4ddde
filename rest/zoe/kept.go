package zoe

import (
	"context"
	"io"
	"time"

	"croft/aggregate"
	"croft/urn"
)

// What is kept of the logs of an execution that has ended.
const (
	maxKept     = 64        // services
	maxKeptText = 128 << 10 // bytes of each
	readingTime = 20 * time.Second
)

// keptLogs are what the services of an execution have written, by nodes.
type keptLogs map[string]string

// keepLogs keeps the logs of an execution before its nodes go.
func (f *Face) keepLogs(_ context.Context, slice urn.URN, steps []aggregate.StepView) {
	for _, e := range f.snapshot(func(e *execution) bool { return e.Slice.Equal(slice) }) {
		logs := keptLogs{}
		if e.Logs {
			if err := f.Records.Get(logRecords, recordName(e.ID), &logs); err != nil {
				f.Log.Warn("reading the logs of an execution", "execution", e.ID, "error", err)
			}
		}
		for _, s := range steps {
			text := s.Text()
			if len(text) == 0 || len(logs) >= maxKept {
				continue
			}
			logs[string(s.Node)] = string(text[:min(len(text), maxKeptText)])
		}
		if len(logs) == 0 {
			continue
		}
		err := f.Records.Put(logRecords, recordName(e.ID), logs)
		if err == nil {
			err = f.change(e.ID, func(e *execution) { e.Logs = true })
		}
		if err != nil {
			f.Log.Error("keeping the logs of an execution", "execution", e.ID, "error", err)
		}
	}
}

// saveLogs keeps the logs of an execution that is being cleaned up.
func (f *Face) saveLogs(ctx context.Context, e *execution) {
	ctx, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	steps, err := f.Service.Startup(ctx, f.principal(e), aggregate.Target{Slice: e.Slice}, true)
	if err != nil && !missing(err) {
		f.Log.Warn("reading the logs of an execution", "execution", e.ID, "error", err)
	}
	f.keepLogs(ctx, e.Slice, steps)
}

// kept writes what was kept of a service's log.
func (f *Face) kept(e *execution, i instance, w io.Writer) error {
	if !e.Logs {
		return nil
	}
	logs := keptLogs{}
	if err := f.Records.Get(logRecords, recordName(e.ID), &logs); err != nil {
		return err
	}
	_, err := io.WriteString(w, logs[string(i.Node)])
	return err
}
