package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be quiet before it is read: editors and
// deployments write in several steps.
const settle = 100 * time.Millisecond

// Watch calls changed after the file at path changed from text, and for each
// signal. It watches the directory, so replaced files and swapped symbolic links
// count as changes. It returns when ctx ends, nil then.
func Watch(ctx context.Context, path, text string, signals <-chan os.Signal, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watch %s: %w", path, err)
	}
	last := text
	quiet := time.NewTimer(settle) // what changed before the watch stood is seen then
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			last = content(path)
			changed()
		case <-w.Events:
			quiet.Reset(settle)
		case err := <-w.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watch %s: %w", path, err)
			}
			quiet.Reset(settle)
		case <-quiet.C:
			if now := content(path); now != last {
				last = now
				changed()
			}
		}
	}
}

// content is that of a file; one that cannot be read differs from every other.
func content(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
