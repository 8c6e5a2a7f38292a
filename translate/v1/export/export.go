package export

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tollgate-dev/tollgate/translate"
)

// Count counts the outcomes of the entries of one kind.
type Count struct {
	// Added were not remembered before, Completed less than now, Kept as much
	// or more.
	Added, Completed, Kept int
}

// Import adds everything to the store's memory of the account. It stops
// at the first failure of the store; written entries stay, and importing
// again goes on.
func (e *Export) Import(ctx context.Context, store translate.Store, account string) (map[string]Count, error) {
	counts := make(map[string]Count)
	for _, kind := range Kinds() {
		count := Count{}
		for _, id := range slices.Sorted(maps.Keys(e.notes[kind])) {
			key := translate.Key{Account: account, Kind: kind, ID: id}
			if err := add(ctx, store, key, e.notes[kind][id], &count); err != nil {
				return counts, fmt.Errorf("%s %s: %w", kind, id, err)
			}
		}
		counts[kind] = count
	}
	return counts, nil
}

// add writes a note, or adds to the one there is what that does not say.
func add(ctx context.Context, store translate.Store, key translate.Key, n note, count *Count) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	added, err := store.Add(ctx, key, raw, translate.NoteTTL)
	if err != nil {
		return err
	}
	if added {
		count.Added++
		return nil
	}
	current, ok, err := store.Get(ctx, key)
	if err != nil {
		return err
	}
	var known note
	if !ok || json.Unmarshal(current, &known) != nil || known == nil {
		known = note{} // gone in this moment, or not to be read by anyone
	}
	if !known.learn(n) {
		count.Kept++
		return nil
	}
	if raw, err = json.Marshal(known); err != nil {
		return err
	}
	count.Completed++
	return store.Put(ctx, key, raw, translate.NoteTTL)
}

// learn takes over the members it lacks and reports whether there were any.
func (n note) learn(from note) (learned bool) {
	for name, value := range from {
		if _, known := n[name]; !known {
			n[name], learned = value, true
		}
	}
	return learned
}
