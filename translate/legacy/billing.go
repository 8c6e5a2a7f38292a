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

// PodGPUTypes returns a function that tells the GPU type of each pod of billing records: from the notes, else
// from the pods there are, else from the ledger. It is UnknownType where none of them knows.
func (s *Session) PodGPUTypes(ctx context.Context, records []any) func(id string) string {
	known := make(map[string]string)
	notes, _ := translate.LoadNotes[translate.PodNote](ctx, s.Client, translate.KindPod)
	for id, note := range notes {
		known[id] = note.GPUTypeID
	}
	if missing, _ := MissingTypes(records, "podId", known); len(missing) > 0 {
		live, err := s.Pods(ctx)
		if err != nil {
			s.Warn("gpuTypeId", "the pods could not be read, their types are unknown")
		}
		for id, note := range s.PodNotes(ctx, live) { // which keeps the types of those that are new
			known[id] = note.GPUTypeID
		}
	}
	s.AddLedgerTypes(ctx, records, "podId", known)
	return func(id string) string { return cmp.Or(known[id], UnknownType) }
}

// AddLedgerTypes adds to known the GPU types that the ledger knows of the other resources of billing records. The id of a record's resource is its
// member.
func (s *Session) AddLedgerTypes(ctx context.Context, records []any, member string, known map[string]string) {
	missing, since := MissingTypes(records, member, known)
	if len(missing) == 0 {
		return
	}
	counted, err := s.Deps().LedgerTypes(ctx, s.Account(), missing, since)
	if err != nil {
		s.Warn("gpuTypeId", "the ledger could not be read, types of deleted resources are unknown")
	}
	maps.Copy(known, counted)
}

// MissingTypes returns the ids of the resources of billing records whose type is not known, and the start of their first record.
func MissingTypes(records []any, member string, known map[string]string) (ids []string, since time.Time) {
	for _, record := range records {
		id := translate.Text(record, member)
		at, err := time.Parse(time.RFC3339Nano, translate.Text(record, "startTime"))
		if err != nil || id == "" || known[id] != "" {
			continue
		}
		if ids = append(ids, id); since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return translate.Unique(ids), since
}
