package legacy

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Container holds the settings that templates, endpoints and pods share.
type Container struct {
	Image Optional[string]
	// Args is the command as one line. Entrypoint and Cmd are its parts in split form; a part that is not given stays
	// unchanged.
	Args            Optional[string]
	Entrypoint, Cmd Optional[[]string]
	Disk            Optional[int64]
	Ports           Optional[[]string]
	Env             Optional[map[string]string]
	// Registry is null to remove the credentials.
	Registry Optional[string]
}

// WriteCreate writes the settings to the body of a create request. It omits empty ones.
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

// WriteUpdate writes the settings to the body of an update request. now is the current resource.
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

// defaultPath is the default mount path of volumes.
const defaultPath = "/workspace"

// mountPath returns the mount path of the persistent volume, or the default path.
func mountPath(c v2.Container) string { return cmp.Or(c.PersistentPath(), defaultPath) }

// minVolumeGB is the minimum size of a v2 volume in GB.
const minVolumeGB = 10

// volumeSize raises a size to the minimum, with a warning.
func (s *Session) volumeSize(field string, gb int64) int64 {
	if gb < minVolumeGB {
		s.Warn(field, s.Quirks.RaisedSize)
	}
	return max(gb, minVolumeGB)
}
