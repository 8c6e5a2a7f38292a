package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is the time for which the inputs must be unchanged before they are read, because editors and deployment tools write files in
// several steps.
const settle = 100 * time.Millisecond

// ReloadRequests trigger a reload although no input has changed. A nil channel triggers none.
type ReloadRequests struct {
	// Signals and Reload request a reload that reads every file again.
	Signals <-chan os.Signal
	// Reload receives channels that are closed after the reload.
	Reload <-chan chan<- struct{}
	// Expired receives a value when an entry of the configuration has expired.
	Expired <-chan struct{}
}

// Watch calls changed after an input has changed, and for each request, until ctx ends. asked is true for Signals and Reload, when every
// file must be read regardless of its size and modification time. changed returns the inputs to watch from then on. It returns the zero
// Inputs if the configuration could not be read, and the previous inputs stay watched.
//
// Watch observes directories, so replaced files and changed symbolic links count as changes. If the operating system does not support
// watching, Watch logs that and still handles signals.
func Watch(ctx context.Context, in Inputs, requests ReloadRequests, logger *slog.Logger, changed func(asked bool) Inputs) {
	w := watcher{in: in, logger: logger}
	defer w.close()
	w.follow(ctx)
	next := time.NewTimer(settle) // notices changes made before the watch started
	defer next.Stop()
	var before Inputs // the previous check
	for {
		select {
		case <-ctx.Done():
			return
		case <-requests.Signals:
			w.reloadNow(ctx, true, changed)
			next.Reset(settle)
		case <-requests.Expired:
			w.reloadNow(ctx, false, changed)
			next.Reset(settle)
		case done := <-requests.Reload:
			w.reloadNow(ctx, true, changed)
			close(done)
			next.Reset(settle)
		case <-w.events():
			// Another file in the directory may be written continuously. Checks run one after the other, and each covers all changes since
			// the previous one.
			if !w.pending {
				next.Reset(settle)
			}
			w.pending = true
		case err := <-w.errors():
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.fault(ctx, err)
			}
			w.pending = true
			next.Reset(settle)
		case <-next.C:
			now := w.in.current()
			w.in.known = now.known
			w.pending = !now.equal(w.in)
			if !w.pending {
				before = Inputs{}
				continue
			}
			if now.equal(before) { // unchanged since the previous check
				w.in = now
				w.adopt(ctx, changed(false))
			}
			before = now
			next.Reset(settle)
		}
	}
}

// watcher watches the directories of inputs. If watching is not possible, its channels are nil and never ready.
type watcher struct {
	in      Inputs
	notify  *fsnotify.Watcher
	logger  *slog.Logger
	pending bool // a change was seen and the inputs have not settled yet
}

// reloadNow reads the inputs immediately.
func (w *watcher) reloadNow(ctx context.Context, asked bool, changed func(asked bool) Inputs) {
	w.in = w.in.current()
	w.adopt(ctx, changed(asked))
}

// adopt starts to watch the inputs of a new configuration.
func (w *watcher) adopt(ctx context.Context, in Inputs) {
	if in.seen != nil {
		w.in = in
	}
	w.follow(ctx)
}

// follow watches the current directories. Directories of previous inputs stay watched, which costs only an extra check.
func (w *watcher) follow(ctx context.Context) {
	if w.notify == nil {
		var err error
		if w.notify, err = fsnotify.NewWatcher(); err != nil {
			w.notify = nil
			w.fault(ctx, err)
			return
		}
	}
	for _, dir := range w.in.directories() {
		if err := w.notify.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.fault(ctx, fmt.Errorf("%s: %w", dir, err))
		}
	}
}

func (w *watcher) fault(ctx context.Context, err error) {
	w.logger.WarnContext(ctx, "configuration not completely watched for changes; send SIGHUP to reload", "error", err.Error())
}

func (w *watcher) events() <-chan fsnotify.Event {
	if w.notify == nil {
		return nil
	}
	return w.notify.Events
}

func (w *watcher) errors() <-chan error {
	if w.notify == nil {
		return nil
	}
	return w.notify.Errors
}

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing was written
	}
}
