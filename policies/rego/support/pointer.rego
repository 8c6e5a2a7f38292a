# METADATA
# title: Pointers into a body (RFC 6901)
package tollgate.pointer

# escape: escapes a member name for use in a pointer.
escape(name) := replace(replace(name, "~", "~0"), "/", "~1")
