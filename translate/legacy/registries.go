package legacy

import (
	"context"

	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Registries lists the account's registry credentials.
func (s *Session) Registries(ctx context.Context) ([]any, error) {
	return s.List(ctx, Purpose{Verb: "list container registry auths", Noun: NounRegistry}, "listRegistries", "registries", nil)
}

// Registry reads registry credentials.
func (s *Session) Registry(ctx context.Context, id string) (map[string]any, error) {
	return s.Read(ctx, NounRegistry.Purpose("get"), "getRegistry", id)
}

// CreateRegistry stores registry credentials.
func (s *Session) CreateRegistry(ctx context.Context, w PassThrough) (map[string]any, error) {
	b := v2.NewObject()
	w.Apply(b)
	return s.Create(ctx, NounRegistry.Purpose("create"), Call("createRegistry", "", b.Members))
}

// DeleteRegistry deletes registry credentials.
func (s *Session) DeleteRegistry(ctx context.Context, id string) error {
	return s.Remove(ctx, NounRegistry.Purpose("delete"), "deleteRegistry", id)
}
