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
	// KindClaim marks pods that were already handed to a caller, so that a
	// create whose answer was lost never adopts someone else's pod.
	KindClaim = "claim"
)

// How long records are kept. Pods outlive their deletion because billing by GPU
// type asks for them afterwards.
const (
	NoteTTL  = 400 * 24 * time.Hour
	ClaimTTL = time.Hour
)

// PodNote is what v2 does not tell about a pod again.
type PodNote struct {
	TemplateID string `json:"templateId,omitempty"`
	GPUTypeID  string `json:"gpuTypeId,omitempty"`
	GPUCount   int64  `json:"gpuCount,omitempty"`
	// InjectedEnv names the variables the platform added by itself.
	InjectedEnv []string `json:"injectedEnv,omitempty"`
	// LockedOnCreate tells that the caller asked for a locked pod.
	LockedOnCreate bool `json:"lockedOnCreate,omitempty"`
}

// EndpointNote is what v2 does not tell about a serverless endpoint again.
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
}

// TemplateNote is what v2 does not keep of a template.
type TemplateNote struct {
	Readme string `json:"readme,omitempty"`
	// PortsConfig is the JSON text a GraphQL caller sent.
	PortsConfig json.RawMessage `json:"portsConfig,omitempty"`
	// NoVolume tells that the volume was set to 0 although v2 kept the mount.
	NoVolume       bool     `json:"noVolume,omitempty"`
	AdvancedStart  bool     `json:"advancedStart,omitempty"`
	StartScript    string   `json:"startScript,omitempty"`
	Config         string   `json:"config,omitempty"`
	BoundEndpoints []string `json:"boundEndpoints,omitempty"`
	// Alias is the id of the template that took this one's place.
	Alias string `json:"alias,omitempty"`
}

// LoadNote reads a record into a T; ok is false when there is none, it cannot
// be read, or the store fails, which is logged.
func LoadNote[T any](ctx context.Context, deps Deps, key Key) (note T, ok bool) {
	raw, ok, err := deps.Store.Get(ctx, key)
	if err != nil {
		deps.Logger.WarnContext(ctx, "translation memory unreadable", "kind", key.Kind, "error", err)
		return note, false
	}
	if !ok || json.Unmarshal(raw, &note) != nil {
		var zero T
		return zero, false
	}
	return note, true
}

// FindNotes reads the records there are of some ids, never nil.
func FindNotes[T any](ctx context.Context, deps Deps, account, kind string, ids []string) map[string]T {
	if len(ids) == 0 {
		return map[string]T{}
	}
	values, err := deps.Store.Find(ctx, account, kind, ids)
	return decodeNotes[T](ctx, deps, kind, values, err)
}

// LoadNotes reads all records of one kind by id, never nil.
func LoadNotes[T any](ctx context.Context, deps Deps, account, kind string) map[string]T {
	values, err := deps.Store.List(ctx, account, kind)
	return decodeNotes[T](ctx, deps, kind, values, err)
}

func decodeNotes[T any](ctx context.Context, deps Deps, kind string, values map[string]json.RawMessage, err error) map[string]T {
	notes := make(map[string]T, len(values))
	if err != nil {
		deps.Logger.WarnContext(ctx, "translation memory unreadable", "kind", kind, "error", err)
		return notes
	}
	for id, raw := range values {
		var note T
		if json.Unmarshal(raw, &note) == nil {
			notes[id] = note
		}
	}
	return notes
}

// SaveNote writes a record. A failure is logged: it must not fail a call the
// platform has carried out. The client leaving does not stop it either.
func SaveNote[T any](ctx context.Context, deps Deps, key Key, note T) {
	raw, err := json.Marshal(note)
	if err == nil {
		err = deps.Store.Put(context.WithoutCancel(ctx), key, raw, NoteTTL)
	}
	if err != nil {
		deps.Logger.WarnContext(ctx, "translation memory not written", "kind", key.Kind, "error", err)
	}
}

// DropNote forgets a record; a failure is logged.
func DropNote(ctx context.Context, deps Deps, key Key) {
	if err := deps.Store.Delete(context.WithoutCancel(ctx), key); err != nil {
		deps.Logger.WarnContext(ctx, "translation memory not written", "kind", key.Kind, "error", err)
	}
}
