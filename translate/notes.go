package translate

import (
	"context"
	"encoding/json"
	"time"
)

// Kinds of notes.
const (
	KindPod      = "pod"
	KindEndpoint = "endpoint"
	KindTemplate = "template"
	// KindSpelling notes hold the names that callers use for the platform itself, so that responses contain the caller's spelling.
	KindSpelling = "spelling"
)

// NoteTTL is the retention of notes. The note about a pod outlives the pod, because billing by GPU type needs it.
const NoteTTL = 400 * 24 * time.Hour

// PodNote stores facts about a pod that v2 does not return.
type PodNote struct {
	TemplateID string `json:"templateId,omitempty"`
	GPUTypeID  string `json:"gpuTypeId,omitempty"`
	GPUCount   int64  `json:"gpuCount,omitempty"`
	// InjectedEnv names the environment variables that the platform added; nil means unknown.
	InjectedEnv []string `json:"injectedEnv,omitzero"`
	// LockedOnCreate reports whether the caller asked for a locked pod.
	LockedOnCreate bool `json:"lockedOnCreate,omitempty"`
}

// EndpointNote stores facts about a serverless endpoint that v2 does not return.
type EndpointNote struct {
	TemplateID string `json:"templateId,omitempty"`
	// GPUTypeIDs lists the selected GPU types in the caller's order.
	GPUTypeIDs       []string `json:"gpuTypeIds,omitempty"`
	NetworkVolumeID  string   `json:"networkVolumeId,omitempty"`
	NetworkVolumeIDs []string `json:"networkVolumeIds,omitempty"`
	// IdleTimeout is in seconds; 0 means unknown. v2 rejects it for queues scaled by request count.
	IdleTimeout int64 `json:"idleTimeout,omitempty"`
	// Version is the last known release, used in lists. 0 means unknown.
	Version int64 `json:"version,omitempty"`
	// Locations and GPUIDs are the strings that a GraphQL caller sent.
	Locations    string `json:"locations,omitempty"`
	GPUIDs       string `json:"gpuIds,omitempty"`
	HubReleaseID string `json:"hubReleaseId,omitempty"`
	// TemplateName is the name of the endpoint's virtual template; "" means the name of the endpoint.
	TemplateName string `json:"templateName,omitempty"`
	// BilledType is the GPU type under which the billing routes of v1 report the cost of the endpoint, or "" if the endpoint has several GPU
	// types. After the deletion of the endpoint, only this field remains.
	BilledType string `json:"billedType,omitempty"`
}

// TemplateNote stores facts about a template that v2 does not keep.
type TemplateNote struct {
	Readme string `json:"readme,omitempty"`
	// PortsConfig is the JSON text that a GraphQL caller sent.
	PortsConfig json.RawMessage `json:"portsConfig,omitempty"`
	// NoVolume reports that the caller removed the volume of the template. v2 kept the mount.
	NoVolume      bool   `json:"noVolume,omitempty"`
	AdvancedStart bool   `json:"advancedStart,omitempty"`
	StartScript   string `json:"startScript,omitempty"`
	Config        string `json:"config,omitempty"`
	// Alias is the id of the template that replaced this template at the platform. Callers continue to use the old id.
	Alias string `json:"alias,omitempty"`
}

// LoadNote reads the stored note (a PodNote, EndpointNote or TemplateNote) with the given key. ok is false if there is no valid note. If
// the store fails, LoadNote adds a warning to the response and returns the error.
func LoadNote[T any](ctx context.Context, d *Client, key Key) (note T, ok bool, err error) {
	var raw json.RawMessage
	err = d.readStore(ctx, key.Kind, []string{key.ID}, func(ctx context.Context) (err error) {
		raw, ok, err = d.deps.Store.Get(ctx, key)
		return err
	})
	if err != nil || !ok || json.Unmarshal(raw, &note) != nil {
		var zero T
		return zero, false, err
	}
	return note, true, nil
}

// FindNotes reads the stored notes (PodNote, EndpointNote or TemplateNote) of several resources, by id, in one store operation. The result
// is never nil. If the store fails, FindNotes adds a warning to the response and returns the error.
func FindNotes[T any](ctx context.Context, d *Client, kind string, ids []string) (map[string]T, error) {
	if len(ids) == 0 {
		return map[string]T{}, nil
	}
	var values []string
	err := d.readStore(ctx, kind, ids, func(ctx context.Context) (err error) {
		values, err = d.deps.Store.Find(ctx, d.account, kind, ids)
		return err
	})
	notes, read := make(map[string]T, len(values)), decoded[T]{}
	for i, value := range values {
		if note := read.note(value); note != nil {
			notes[ids[i]] = *note
		}
	}
	return notes, err
}

// LoadNotes reads all stored notes of one kind (PodNote, EndpointNote or TemplateNote), by id. The result is never nil. If the store fails,
// LoadNotes adds a warning to the response and returns the error.
func LoadNotes[T any](ctx context.Context, d *Client, kind string) (map[string]T, error) {
	var values map[string]json.RawMessage
	err := d.readStore(ctx, kind, []string{everyID}, func(ctx context.Context) (err error) {
		values, err = d.deps.Store.List(ctx, d.account, kind)
		return err
	})
	notes, read := make(map[string]T, len(values)), decoded[T]{}
	for id, value := range values {
		if note := read.note(string(value)); note != nil {
			notes[id] = *note
		}
	}
	return notes, err
}

// decoded caches decoded records by their text, with nil for an invalid one. Many pods have identical records, which
// share one decoded value.
type decoded[T any] map[string]*T

// note decodes a record, or returns nil for "".
func (d decoded[T]) note(text string) *T {
	if text == "" {
		return nil
	}
	note, ok := d[text]
	if !ok {
		if note = new(T); json.Unmarshal([]byte(text), note) != nil {
			note = nil
		}
		d[text] = note
	}
	return note
}

// SaveNote stores a note (a PodNote, EndpointNote or TemplateNote). It does nothing if LoadNote could not read the existing note in this
// request, because the write would destroy the unread content. A failure only adds a warning, because the platform has already carried out
// the call. The write continues after a client disconnect and after the end of the time budget.
func SaveNote[T any](ctx context.Context, d *Client, key Key, note T) {
	d.writeStore(context.WithoutCancel(ctx), key.Kind, key.ID, func(ctx context.Context) error {
		raw, err := json.Marshal(note)
		if err != nil {
			return err
		}
		return d.deps.Store.Put(ctx, key, raw, NoteTTL)
	})
}

// AddNotes stores notes (PodNote, EndpointNote or TemplateNote) by id, in one store operation and within the time budget. It does not
// change existing notes.
func AddNotes[T any](ctx context.Context, d *Client, kind string, notes map[string]T) {
	if len(notes) == 0 {
		return
	}
	d.writeStore(ctx, kind, "", func(ctx context.Context) error {
		values := make(map[string]json.RawMessage, len(notes))
		for id, note := range notes {
			raw, err := json.Marshal(note)
			if err != nil {
				return err
			}
			values[id] = raw
		}
		return d.deps.Store.AddAll(ctx, d.account, kind, values, NoteTTL)
	})
}

// DropNote deletes a stored note. A failure only adds a warning.
func DropNote(ctx context.Context, d *Client, key Key) {
	d.writeStore(context.WithoutCancel(ctx), key.Kind, "", func(ctx context.Context) error {
		return d.deps.Store.Delete(ctx, key)
	})
}
