package legacy

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// UnknownType is the GPU type in billing records of a pod or endpoint with an unknown GPU type.
const UnknownType = "unknown"

// PodGPUTypes returns a function that maps the pod ids in billing records to GPU types. The function looks for the type in the stored
// PodNote, then in the list of existing pods, then in the ledger. If it finds no type, it returns UnknownType.
func (s *Session) PodGPUTypes(ctx context.Context, records []any) func(id string) string {
	known := make(map[string]string)
	notes, _ := translate.LoadNotes[translate.PodNote](ctx, s.Client, translate.KindPod)
	for id, note := range notes {
		known[id] = note.GPUTypeID
	}
	if missing, _ := MissingTypes(records, "podId", known); len(missing) > 0 {
		live, err := s.Pods(ctx)
		if err != nil {
			s.Warn("gpuTypeId", "cannot read the pods, so the GPU types of some pods are unknown")
		}
		for id, note := range s.PodNotes(ctx, live) { // also stores the types of pods without a note
			known[id] = note.GPUTypeID
		}
	}
	s.AddLedgerTypes(ctx, records, "podId", known)
	return func(id string) string { return cmp.Or(known[id], UnknownType) }
}

// AddLedgerTypes reads the GPU types of resources in billing records from the ledger and adds them to known. It does not change entries of
// known. member is the record field with the resource id.
func (s *Session) AddLedgerTypes(ctx context.Context, records []any, member string, known map[string]string) {
	missing, since := MissingTypes(records, member, known)
	if len(missing) == 0 {
		return
	}
	counted, err := s.Deps().LedgerTypes(ctx, s.Account(), missing, since)
	if err != nil {
		s.Warn("gpuTypeId", "cannot read the ledger, so the GPU types of deleted resources are unknown")
	}
	maps.Copy(known, counted)
}

// MissingTypes returns the resource ids in billing records that are not in known, and the earliest start time of the records with these
// ids.
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
