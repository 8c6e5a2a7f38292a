package legacy

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// VolumeInput holds a caller's settings of a network volume.
type VolumeInput struct {
	Name, DataCenter Optional[string]
	SizeGB           Optional[int64]
}

// Volumes lists the account's network volumes.
func (s *Session) Volumes(ctx context.Context) ([]any, error) {
	return s.List(ctx, Purpose{Verb: "list network volumes", Noun: NounVolume}, "listNetworkVolumes", "networkVolumes", nil)
}

// Volume reads a network volume.
func (s *Session) Volume(ctx context.Context, id string) (map[string]any, error) {
	return s.Read(ctx, NounVolume.Purpose("get"), "getNetworkVolume", id)
}

// CreateVolume creates a network volume. If the requested size is less than 10 GB, the minimum of v2, CreateVolume requests 10 GB and adds
// a warning.
func (s *Session) CreateVolume(ctx context.Context, w *VolumeInput) (map[string]any, error) {
	b := v2.NewNetworkVolume()
	b.SetName(w.Name.Value())
	b.SetDataCenter(w.DataCenter.Value())
	b.SetSize(s.volumeSize("size", w.SizeGB.Value()))
	purpose := Purpose{Verb: "create network volume", Noun: NounDataCenter, BodyID: b.DataCenter()}
	made, err := s.Create(ctx, purpose, Call("createNetworkVolume", "", b.Members))
	return made, s.misplaced(ctx, purpose.Verb, err, b.DataCenter())
}

// misplaced returns err, or an error that names a data centre if err is a 400 and one of the ids is not in the catalog. A 400 from the
// platform does not identify its cause.
func (s *Session) misplaced(ctx context.Context, verb string, err error, ids ...string) error {
	if statusOf(err) != http.StatusBadRequest || len(ids) == 0 {
		return err
	}
	list, unread := s.DataCenters(ctx, nil)
	if unread != nil {
		return err
	}
	for _, id := range ids {
		if translate.ByID(list, id) == nil {
			return &RefusedError{Purpose{Verb: verb, Noun: NounDataCenter, BodyID: id}, &translate.Response{Status: http.StatusNotFound}, nil}
		}
	}
	return err
}

// UpdateVolume renames or enlarges a network volume.
func (s *Session) UpdateVolume(ctx context.Context, id string, w *VolumeInput) (map[string]any, error) {
	b := v2.NewNetworkVolume()
	if name := w.Name.Value(); name != "" {
		b.SetName(name)
	}
	if size, ok := w.SizeGB.Get(); ok && size < minVolumeGB {
		return nil, invalid("size", "must be at least %d", minVolumeGB)
	}
	w.SizeGB.Apply(b.SetSize)
	p := patch{purpose: NounVolume.Purpose("update"), read: "getNetworkVolume", update: "updateNetworkVolume", id: id}
	return s.apply(ctx, &p, b.Members, nil)
}

// DeleteVolume deletes a network volume.
func (s *Session) DeleteVolume(ctx context.Context, id string) error {
	return s.Remove(ctx, NounVolume.Purpose("delete"), "deleteNetworkVolume", id)
}
