package legacy

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Container holds a caller's wishes for the settings that templates, endpoints and pods
// share.
type Container struct {
	Image Optional[string]
	// Args is the command as one line; Entrypoint and Cmd are its halves in split
	// form, of which the one that is not given stays.
	Args            Optional[string]
	Entrypoint, Cmd Optional[[]string]
	Disk            Optional[int64]
	Ports           Optional[[]string]
	Env             Optional[map[string]string]
	// Registry is null to take the credentials away.
	Registry Optional[string]
}

// WriteCreate writes the wishes into a body that makes something; empty ones are left out.
func (w *Container) WriteCreate(b v2.Container) {
	w.WriteUpdate(b, v2.Container{})
	if b.Shell() == "" {
		delete(b.Members, "args")
	}
	if len(b.Env()) == 0 {
		delete(b.Members, "env")
	}
	if b.Registry() == "" {
		delete(b.Members, "registry")
	}
}

// WriteUpdate writes the wishes into a body that changes something, now.
func (w *Container) WriteUpdate(b, now v2.Container) {
	if image := w.Image.Value(); image != "" {
		b.SetImage(image)
	}
	if disk := w.Disk.Value(); disk > 0 {
		b.SetDisk(disk)
	}
	w.Args.Apply(b.SetArgs)
	if w.splitCommand() {
		command := now.Command()
		command.Entrypoint = w.Entrypoint.Or(command.Entrypoint)
		command.Cmd = w.Cmd.Or(command.Cmd)
		b.SetArgs(command.Args())
	}
	w.Ports.Apply(b.SetPorts)
	w.Env.Apply(b.SetEnv)
	w.Registry.ApplyOrZero(b.SetRegistry)
}

func (w *Container) splitCommand() bool { return w.Entrypoint.IsSet() || w.Cmd.IsSet() }

// DefaultPath is where volumes are mounted unless told otherwise.
const DefaultPath = "/workspace"

// mountPath is where the persistent volume is, or would be.
func mountPath(c v2.Container) string { return cmp.Or(c.PersistentPath(), DefaultPath) }

// MinVolumeGB is v2's least size of a volume in GB.
const MinVolumeGB = 10

// volumeSize raises a size to the smallest there is.
func (s *Session) volumeSize(field string, gb int64) int64 {
	if gb < MinVolumeGB {
		s.Warn(field, s.Quirks.RaisedSize)
	}
	return max(gb, MinVolumeGB)
}
