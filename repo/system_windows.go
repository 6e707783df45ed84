package repo

// systemConfig is where Git for Windows has it by default.
const systemConfig = `C:\Program Files\Git\etc\gitconfig`
