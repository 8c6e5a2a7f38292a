package translate

import (
	"context"
	"encoding/json"
	"time"
)

// Kinds of remembered records.
const (
	KindPod      = "pod"
	KindEndpoint = "endpoint"
	KindTemplate = "template"
	// KindSpelling are names that callers have for the platform.
	KindSpelling = "spelling"
)

// NoteTTL is how long records are kept. Pods outlive their deletion because billing
// by GPU type asks for them afterwards.
const NoteTTL = 400 * 24 * time.Hour

// PodNote holds facts of a pod that v2 does not return again.
type PodNote struct {
	TemplateID string `json:"templateId,omitempty"`
	GPUTypeID  string `json:"gpuTypeId,omitempty"`
	GPUCount   int64  `json:"gpuCount,omitempty"`
	// InjectedEnv names the variables the platform added by itself; nil when that
	// is not known.
	InjectedEnv []string `json:"injectedEnv,omitzero"`
	// LockedOnCreate tells that the caller asked for a locked pod.
	LockedOnCreate bool `json:"lockedOnCreate,omitempty"`
}

// EndpointNote holds facts of a serverless endpoint that v2 does not return again.
type EndpointNote struct {
	TemplateID string `json:"templateId,omitempty"`
	// GPUTypeIDs is the selection in the caller's order.
	GPUTypeIDs       []string `json:"gpuTypeIds,omitempty"`
	NetworkVolumeID  string   `json:"networkVolumeId,omitempty"`
	NetworkVolumeIDs []string `json:"networkVolumeIds,omitempty"`
	// IdleTimeout in seconds, 0 when unknown; v2 refuses it for queues scaled by
	// request count.
	IdleTimeout int64 `json:"idleTimeout,omitempty"`
	// Version is the release last seen, for lists; 0 when unknown.
	Version int64 `json:"version,omitempty"`
	// Locations and GPUIDs are the texts a GraphQL caller sent.
	Locations    string `json:"locations,omitempty"`
	GPUIDs       string `json:"gpuIds,omitempty"`
	HubReleaseID string `json:"hubReleaseId,omitempty"`
	// TemplateName is the name of the endpoint's virtual template, "" for the endpoint's own name.
	TemplateName string `json:"templateName,omitempty"`
	// BilledType is the GPU type that its amounts are filed under; all that is left
	// of the note when the endpoint is gone. Empty when there are several.
	BilledType string `json:"billedType,omitempty"`
}

// TemplateNote holds facts of a template that v2 does not keep.
type TemplateNote struct {
	Readme string `json:"readme,omitempty"`
	// PortsConfig is the JSON text a GraphQL caller sent.
	PortsConfig json.RawMessage `json:"portsConfig,omitempty"`
	// NoVolume tells that the volume was set to 0 although v2 kept the mount.
	NoVolume      bool   `json:"noVolume,omitempty"`
	AdvancedStart bool   `json:"advancedStart,omitempty"`
	StartScript   string `json:"startScript,omitempty"`
	Config        string `json:"config,omitempty"`
	// Alias is the id of the template that took this one's place.
	Alias string `json:"alias,omitempty"`
}

// LoadNote reads a record into a T; ok is false when there is none or it makes no
// sense. An error means that the store cannot tell, of which the caller is
// warned; then SaveNote does not write the record, because that would destroy
// its content.
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

// FindNotes reads the records there are of some ids in one exchange, never nil.
// An error is as with LoadNote, for all of the ids.
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

// LoadNotes reads all records of one kind by id, never nil. An error is as with
// LoadNote, for all of the kind.
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

// decoded are records by their text, nil for an invalid one. Those of many pods are
// the same text, which is read once: its value is shared.
type decoded[T any] map[string]*T

// note reads a record, nil for "".
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

// SaveNote writes a record, unless the one it would replace could not be read. A
// failure is a warning: it must not fail a call the platform has carried out.
// The client leaving does not stop it, nor does the end of the budget.
func SaveNote[T any](ctx context.Context, d *Client, key Key, note T) {
	d.writeStore(context.WithoutCancel(ctx), key.Kind, key.ID, func(ctx context.Context) error {
		raw, err := json.Marshal(note)
		if err != nil {
			return err
		}
		return d.deps.Store.Put(ctx, key, raw, NoteTTL)
	})
}

// AddNotes writes the records of ids that have none yet, in one exchange and
// within the time the request has. Others are left as they are.
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

// DropNote forgets a record; a failure is a warning.
func DropNote(ctx context.Context, d *Client, key Key) {
	d.writeStore(context.WithoutCancel(ctx), key.Kind, "", func(ctx context.Context) error {
		return d.deps.Store.Delete(ctx, key)
	})
}
