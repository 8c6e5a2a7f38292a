package v2

// Template is a view of a template, or of the body of a request that creates or updates a template.
type Template struct{ Container }

// TemplateOf returns a view of a decoded template.
func TemplateOf(body any) Template { return Template{ContainerOf(body)} }

// NewTemplate returns an empty body to write to.
func NewTemplate() Template { return Template{Container{NewObject()}} }

// Category returns the hardware category: NVIDIA, AMD or CPU.
func (t Template) Category() string { return t.text("category") }

// SetCategory sets the hardware category.
func (t Template) SetCategory(category string) { t.set(category, "category") }

// Public reports whether all accounts may use the template.
func (t Template) Public() bool { return t.flag("public") }

// SetPublic sets whether all accounts may use the template.
func (t Template) SetPublic(on bool) { t.set(on, "public") }

// Serverless reports whether the template is for endpoints.
func (t Template) Serverless() bool { return t.flag("serverless") }

// SetServerless sets whether the template is for endpoints.
func (t Template) SetServerless(on bool) { t.set(on, "serverless") }

// StartSSH reports whether pods of the template run an SSH server.
func (t Template) StartSSH() bool { return t.flag("startSsh") }

// StartJupyter reports whether pods of the template run a notebook server.
func (t Template) StartJupyter() bool { return t.flag("startJupyter") }

// CUDAVersions returns the allowed CUDA versions of hosts.
func (t Template) CUDAVersions() []string { return t.texts("allowedCudaVersions") }

// Copy returns the body of a request that creates an equal template.
func (t Template) Copy() Template {
	body := NewTemplate()
	t.CopyInto(body.Container)
	for _, name := range [...]string{"name", "serverless", "public", "category", "startSsh", "startJupyter", "mounts", "allowedCudaVersions"} {
		if value := t.at(name); value != nil {
			body.set(value, name)
		}
	}
	return body
}
