package legacy

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/translate/v2"
)

// Container holds the settings that templates, endpoints and pods share.
type Container struct {
	Image Optional[string]
	// Args is the command as one line. Entrypoint and Cmd are the parts of the command; a part that is absent from the input stays unchanged.
	Args            Optional[string]
	Entrypoint, Cmd Optional[[]string]
	Disk            Optional[int64]
	Ports           Optional[[]string]
	Env             Optional[map[string]string]
	// Registry is "" to remove the credentials.
	Registry Optional[string]
}

// WriteCreate writes the settings to the body of a request that creates a resource. It omits empty settings.
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

// WriteUpdate writes the settings to the body b of an update request. current is the resource before the update.
func (w *Container) WriteUpdate(b, current v2.Container) {
	w.writeBasics(b)
	w.Args.Apply(b.SetArgs)
	if w.splitCommand() {
		command := current.Command()
		command.Entrypoint = w.Entrypoint.Or(command.Entrypoint)
		command.Cmd = w.Cmd.Or(command.Cmd)
		b.SetArgs(command.Args())
	}
	w.Env.Apply(b.SetEnv)
	w.Registry.Apply(b.SetRegistry)
}

// writeBasics writes the settings that are written the same way for every resource.
func (w *Container) writeBasics(b v2.Container) {
	if image := w.Image.Value(); image != "" {
		b.SetImage(image)
	}
	if disk := w.Disk.Value(); disk > 0 {
		b.SetDisk(disk)
	}
	w.Ports.Apply(b.SetPorts)
}

func (w *Container) splitCommand() bool { return w.Entrypoint.IsSet() || w.Cmd.IsSet() }

// defaultPath is the default mount path of volumes.
const defaultPath = "/workspace"

// mountPath returns the mount path of the persistent volume, or the default path.
func mountPath(c v2.Container) string { return cmp.Or(c.PersistentPath(), defaultPath) }

// minVolumeGB is the minimum size of a v2 volume in GB.
const minVolumeGB = 10

// volumeSize returns a volume size of at least the minimum. It adds a warning if it raises the size.
func (s *Session) volumeSize(field string, gb int64) int64 {
	if gb < minVolumeGB {
		s.Warn(field, s.Quirks.RaisedSize)
	}
	return max(gb, minVolumeGB)
}
