package legacy

import "context"

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
	return s.Create(ctx, NounRegistry.Purpose("create"), Call("createRegistry", "", w))
}

// DeleteRegistry deletes registry credentials.
func (s *Session) DeleteRegistry(ctx context.Context, id string) error {
	return s.Remove(ctx, NounRegistry.Purpose("delete"), "deleteRegistry", id)
}
