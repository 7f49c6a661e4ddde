package zapp

import (
	"croft/capacity"
	"croft/languages"
	"croft/request"
)

// App is a ZApp as it is written.
type App struct {
	Name        string
	Version     int // 2 or 3
	WillEnd     bool
	Size        int64 // version 3; the priority of version 2
	Autorestart bool  // services that are no monitors are started anew when they end
	Services    []Service

	place  request.Place
	unused []languages.Problem // what is kept and has no effect
}

func (a *App) version() string {
	if a.Version == 3 {
		return "3"
	}
	return "2"
}

// Service is a kind of container of a ZApp, of which there are Essential at
// least and Total at most.
type Service struct {
	Name        string
	Image       string
	Monitor     bool // its end ends the execution
	Total       int
	Essential   int
	Order       float64 // services of a lower one start first
	Memory      capacity.MiB
	Cores       capacity.Cores
	Environment []Variable
	Ports       []Port
	Command     string // "" is the image's own
	WorkDir     string
	Labels      []string

	place, imagePlace request.Place
}

// Variable is a name in the environment and its value, which may hold
// {variables}.
type Variable struct {
	Name, Value string
	place       request.Place
}

// Port is a port that users want to reach.
type Port struct {
	Name     string
	Number   int
	Protocol string // "tcp" or "udp"
	URL      string // with {host} and {port}
	Main     bool   // the one to look at first
	place    request.Place
}

// Essential is how many nodes the ZApp cannot do without.
func (a *App) Essential() int {
	n := 0
	for _, s := range a.Services {
		n += s.Essential
	}
	return n
}
