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

// settle is how long the inputs must stay as they are before they are read: editors
// and deployments write in several steps.
const settle = 100 * time.Millisecond

// ReloadRequests have the inputs read again although none has changed. Nil channels request nothing.
type ReloadRequests struct {
	Signals <-chan os.Signal
	// Reload has channels that are closed when the inputs were read.
	Reload <-chan chan<- struct{}
	// Expired has a value when something has ended that a reading did not wait for.
	Expired <-chan struct{}
}

// Watch calls changed after one of the inputs changed, and for each request, until
// ctx ends. asked is true for Signals and Again: every file is to be read, whatever
// its size and time. The inputs that changed returns are watched from then on; the zero
// Inputs, for a configuration that could not be read, keeps the old ones. Directories are
// watched, so replaced files and swapped symbolic links count as changes. Where the
// system does not watch, which is logged, signals still do.
func Watch(ctx context.Context, in Inputs, requests ReloadRequests, logger *slog.Logger, changed func(asked bool) Inputs) {
	w := watcher{in: in, logger: logger}
	defer w.close()
	w.follow(ctx)
	next := time.NewTimer(settle) // changes before the watch stood are seen then
	defer next.Stop()
	var before Inputs // the last look
	for {
		select {
		case <-ctx.Done():
			return
		case <-requests.Signals:
			w.takeNow(ctx, true, changed)
			next.Reset(settle)
		case <-requests.Expired:
			w.takeNow(ctx, false, changed)
			next.Reset(settle)
		case done := <-requests.Reload:
			w.takeNow(ctx, true, changed)
			close(done)
			next.Reset(settle)
		case <-w.events():
			// Another file of the directory may be written all the time: looks are
			// made one after the other, with any changes meanwhile.
			if !w.looking {
				next.Reset(settle)
			}
			w.looking = true
		case err := <-w.errors():
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.fault(ctx, err)
			}
			w.looking = true
			next.Reset(settle)
		case <-next.C:
			now := w.in.look()
			w.in.known = now.known
			w.looking = !now.equal(w.in)
			if !w.looking {
				before = Inputs{}
				continue
			}
			if now.equal(before) { // it has settled
				w.in = now
				w.take(ctx, changed(false))
			}
			before = now
			next.Reset(settle)
		}
	}
}

// watcher follows the directories of inputs. Its channels are nil, and so never
// ready, where there is nothing to watch with.
type watcher struct {
	in      Inputs
	notify  *fsnotify.Watcher
	logger  *slog.Logger
	looking bool // at a change, until it has settled
}

// takeNow has the inputs read at once.
func (w *watcher) takeNow(ctx context.Context, asked bool, changed func(asked bool) Inputs) {
	w.in = w.in.look()
	w.take(ctx, changed(asked))
}

// take turns to the inputs of a newer configuration.
func (w *watcher) take(ctx context.Context, in Inputs) {
	if in.seen != nil {
		w.in = in
	}
	w.follow(ctx)
}

// follow watches the directories there are now. Those of earlier inputs cost
// nothing but a look.
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
	w.logger.WarnContext(ctx, "configuration is not watched as a whole; SIGHUP reads it again", "error", err.Error())
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
