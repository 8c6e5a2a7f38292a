package v2

import (
	"cmp"
	"maps"

	"github.com/tollgate-dev/tollgate/translate"
)

// Container is a view of the container settings that pods, templates and endpoints share.
type Container struct{ Object }

// ContainerOf returns a view of the container settings of a decoded body.
func ContainerOf(body any) Container { return Container{objectOf(body)} }

// Image returns the container image.
func (c Container) Image() string { return c.text("image") }

// SetImage sets the container image.
func (c Container) SetImage(image string) { c.set(image, "image") }

// Command returns the container command from any of the forms that a body can use.
func (c Container) Command() translate.Command {
	command := translate.Command{Entrypoint: c.texts("entrypoint"), Cmd: c.texts("cmd")}
	if command.Empty() {
		return translate.ParseArgs(c.text("args"))
	}
	return command
}

// Shell returns the command as one line: the args of the body unchanged, or the joined entrypoint and cmd.
func (c Container) Shell() string {
	if args := c.text("args"); args != "" {
		return args
	}
	return c.Command().Shell()
}

// SetArgs sets the command in its one-line form.
func (c Container) SetArgs(args string) { c.set(args, "args") }

// SetEntrypoint sets the entrypoint of the command.
func (c Container) SetEntrypoint(words []string) { c.set(translate.List(words), "entrypoint") }

// SetCmd sets the arguments of the command.
func (c Container) SetCmd(words []string) { c.set(translate.List(words), "cmd") }

// Disk returns the size of the container disk in GB.
func (c Container) Disk() int64 { return c.whole("disk") }

// SetDisk sets the size of the container disk in GB.
func (c Container) SetDisk(gb int64) { c.set(translate.Int(gb), "disk") }

// Ports returns the open ports as "<port>/<protocol>".
func (c Container) Ports() []string { return c.texts("ports") }

// AppendPorts appends the open ports to ports.
func (c Container) AppendPorts(ports []string) []string {
	return translate.AppendTexts(ports, c.body(), "ports")
}

// SetPorts sets the open ports.
func (c Container) SetPorts(ports []string) { c.set(translate.List(ports), "ports") }

// Env returns the environment. The map belongs to the body and must not be modified.
func (c Container) Env() map[string]any { return translate.Members(c.at("env")) }

// Variables returns the environment as decoded, a map or a Record, or nil.
func (c Container) Variables() any { return c.at("env") }

// SetEnv sets the environment.
func (c Container) SetEnv(vars map[string]string) { c.set(translate.EnvObject(vars), "env") }

// Registry returns the id of the registry credentials.
func (c Container) Registry() string { return c.text("registry") }

// SetRegistry sets the id of the registry credentials; "" sets null.
func (c Container) SetRegistry(id string) {
	if id == "" {
		c.set(nil, "registry")
		return
	}
	c.set(id, "registry")
}

// PersistentSize returns the size of the persistent volume in GB, or 0.
func (c Container) PersistentSize() int64 { return c.whole("mounts", "persistent", "size") }

// PersistentPath returns the mount path of the persistent volume.
func (c Container) PersistentPath() string { return c.text("mounts", "persistent", "path") }

// SetPersistent mounts a persistent volume and removes any other mount. The size is in GB.
func (c Container) SetPersistent(gb int64, path string) {
	c.set(map[string]any{"persistent": map[string]any{"size": translate.Int(gb), "path": path}}, "mounts")
}

// CopyInto copies the settings that have a value to another body, as the platform does when a request names a template.
func (c Container) CopyInto(to Container) {
	for _, name := range [...]string{"image", "registry"} {
		if s := c.text(name); s != "" {
			to.set(s, name)
		}
	}
	if args := cmp.Or(c.text("args"), c.Command().Args()); args != "" {
		to.SetArgs(args)
	}
	if disk := c.Disk(); disk > 0 {
		to.SetDisk(disk)
	}
	if ports := c.Ports(); len(ports) > 0 {
		to.SetPorts(ports)
	}
	if vars := c.Env(); len(vars) > 0 {
		to.set(maps.Clone(vars), "env")
	}
}
