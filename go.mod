module croft

go 1.26
