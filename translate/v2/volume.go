package v2

import "github.com/tollgate-dev/tollgate/translate"

// NetworkVolume is a view of a network volume, or of the body of a request that creates or updates a network volume.
type NetworkVolume struct{ Object }

// NetworkVolumeOf returns a view of a decoded network volume.
func NetworkVolumeOf(body any) NetworkVolume { return NetworkVolume{objectOf(body)} }

// NewNetworkVolume returns an empty body to write to.
func NewNetworkVolume() NetworkVolume { return NetworkVolume{NewObject()} }

// Size returns the size in GB.
func (v NetworkVolume) Size() int64 { return v.whole("size") }

// SetSize sets the size in GB.
func (v NetworkVolume) SetSize(gb int64) { v.set(translate.Int(gb), "size") }

// DataCenter returns the id of the data centre.
func (v NetworkVolume) DataCenter() string { return v.text("dataCenter") }

// SetDataCenter sets the id of the data centre.
func (v NetworkVolume) SetDataCenter(id string) { v.set(id, "dataCenter") }
