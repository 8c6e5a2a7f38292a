# METADATA
# title: Pointers into a body (RFC 6901)
package tollgate.pointer

# escape makes a member name usable in a pointer.
escape(name) := replace(replace(name, "~", "~0"), "/", "~1")
