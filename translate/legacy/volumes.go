package legacy

import (
	"context"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/v2"
)

// VolumeInput are a caller's wishes about a network volume.
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

// CreateVolume makes a network volume. Sizes below the smallest are raised.
func (s *Session) CreateVolume(ctx context.Context, w *VolumeInput) (map[string]any, error) {
	b := v2.NewNetworkVolume()
	b.SetName(w.Name.Value())
	b.SetDataCenter(w.DataCenter.Value())
	b.SetSize(s.volumeSize("size", w.SizeGB.Value()))
	about := Purpose{Verb: "create network volume", Noun: NounDataCenter, BodyID: b.DataCenter()}
	made, err := s.Create(ctx, about, Call("createNetworkVolume", "", b.Members))
	return made, s.misplaced(ctx, about.Verb, err, b.DataCenter())
}

// misplaced is a refusal that names a data centre which the catalog does not have, if
// one of the ids is such; else err. A 400 of the platform may be about anything.
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

// UpdateVolume renames or grows a network volume.
func (s *Session) UpdateVolume(ctx context.Context, id string, w *VolumeInput) (map[string]any, error) {
	b := v2.NewNetworkVolume()
	if name := w.Name.Value(); name != "" {
		b.SetName(name)
	}
	if size, ok := w.SizeGB.Get(); ok && size < MinVolumeGB {
		return nil, invalid("size", "must be at least %d", MinVolumeGB)
	}
	w.SizeGB.Apply(b.SetSize)
	p := patch{about: NounVolume.Purpose("update"), read: "getNetworkVolume", update: "updateNetworkVolume", id: id}
	return s.apply(ctx, &p, b.Members, nil)
}

// DeleteVolume deletes a network volume.
func (s *Session) DeleteVolume(ctx context.Context, id string) error {
	return s.Remove(ctx, NounVolume.Purpose("delete"), "deleteNetworkVolume", id)
}
