package platform

// volume is a network volume.
type volume struct {
	ID, Name   string
	Size       int64 // GB
	DataCenter string
	Tier       string
}
