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

// settle is the time for which the inputs must stay unchanged before they are read. Editors and deployment tools write files in several
// steps.
const settle = 100 * time.Millisecond

// ReloadRequests holds channels that trigger a reload even if no input has changed. A nil channel never triggers a reload.
type ReloadRequests struct {
	// Signals receives a value to request a reload that reads every file again.
	Signals <-chan os.Signal
	// Reload receives a channel to request the same reload. [Watch] closes the channel after the reload.
	Reload <-chan chan<- struct{}
	// Expired receives a value when an entry of the configuration has expired.
	Expired <-chan struct{}
}

// Watch calls the function changed after an input has changed and for each request, until ctx ends. The parameter asked is true for
// requests from Signals and Reload; every file must then be read, regardless of its size and modification time. The result of the function
// is the inputs to watch from then on, or the zero Inputs if the configuration could not be read; Watch then continues to watch the
// previous inputs.
//
// Watch observes directories, so that replaced files and changed symbolic links count as changes. If the operating system cannot watch
// directories, Watch logs a message and handles only requests.
func Watch(ctx context.Context, in Inputs, requests ReloadRequests, logger *slog.Logger, changed func(asked bool) Inputs) {
	w := watcher{in: in, logger: logger}
	defer w.close()
	w.follow(ctx)
	next := time.NewTimer(settle) // notices changes made before the watch started
	defer next.Stop()
	reload := func(asked bool) {
		w.in = w.in.current()
		w.adopt(ctx, changed(asked))
		next.Reset(settle)
	}
	var before Inputs // the previous check
	for {
		select {
		case <-ctx.Done():
			return
		case <-requests.Signals:
			reload(true)
		case <-requests.Expired:
			reload(false)
		case done := <-requests.Reload:
			reload(true)
			close(done)
		case <-w.events:
			// An unrelated file in the directory may be written continuously. Therefore an event starts the timer only if no check is pending.
			if !w.pending {
				next.Reset(settle)
			}
			w.pending = true
		case err := <-w.errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.fault(ctx, err)
			}
			w.pending = true
			next.Reset(settle)
		case <-next.C:
			now := w.in.current()
			w.pending = !now.equal(w.in)
			if !w.pending {
				w.in, before = now, Inputs{}
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
	events  <-chan fsnotify.Event
	errors  <-chan error
	logger  *slog.Logger
	pending bool // a change was seen and the inputs have not settled yet
}

// adopt replaces the watched inputs with the inputs of a new configuration.
func (w *watcher) adopt(ctx context.Context, in Inputs) {
	if in.found != nil {
		w.in = in
	}
	w.follow(ctx)
}

// follow watches the directories of the current inputs. Directories of previous inputs also stay watched; this only causes extra checks.
func (w *watcher) follow(ctx context.Context) {
	if w.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			w.fault(ctx, err)
			return
		}
		w.notify, w.events, w.errors = notify, notify.Events, notify.Errors
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

func (w *watcher) close() {
	if w.notify != nil {
		_ = w.notify.Close() // nothing was written
	}
}
