package connect

// SetPlaces replaces the well-known sockets and the directories of slurmrestd.
func (o *Options) SetPlaces(sockets, programs []string) {
	o.sockets, o.programs = append([]string{}, sockets...), append([]string{}, programs...)
}
