package legacy

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// UnknownType is what billing calls the type of a pod or endpoint of which it is
// not known.
const UnknownType = "unknown"

// PodTypes returns a function that tells the GPU type of each pod of billing records: from the notes, else
// from the pods there are, else from the ledger. It is UnknownType where none of them knows.
func (s *Session) PodTypes(ctx context.Context, records []any) func(id string) string {
	known := make(map[string]string)
	notes, _ := translate.LoadNotes[translate.PodNote](ctx, s.Dialogue, translate.KindPod)
	for id, note := range notes {
		known[id] = note.GPUTypeID
	}
	if missing, _ := untyped(records, known); len(missing) > 0 {
		live, err := s.Pods(ctx)
		if err != nil {
			s.Remark("gpuTypeId", "the pods could not be read, their types are unknown")
		}
		for id, note := range s.PodNotes(ctx, live) { // which keeps the types of those that are new
			known[id] = note.GPUTypeID
		}
	}
	if missing, since := untyped(records, known); len(missing) > 0 {
		counted, err := s.Deps().Counted(ctx, s.Account(), missing, since)
		if err != nil {
			s.Remark("gpuTypeId", "the ledger could not be read, types of pods that are gone are unknown")
		}
		maps.Copy(known, counted)
	}
	return func(id string) string { return cmp.Or(known[id], UnknownType) }
}

// untyped are the pods of records that have no known type, and when the first of the records begins.
func untyped(records []any, known map[string]string) (pods []string, since time.Time) {
	for _, record := range records {
		id := translate.Text(record, "podId")
		at, err := time.Parse(time.RFC3339Nano, translate.Text(record, "startTime"))
		if err != nil || id == "" || known[id] != "" {
			continue
		}
		if pods = append(pods, id); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return translate.Unique(pods), since
}
